# form: https://docs.docker.com/reference/cli/docker/container/run/
docker run -d --name db -e POSTGRES_PASSWORD_FILE=/run/secrets/pw -p 127.0.0.1:5432:5432 postgres:17
docker run --rm -it -v "$PWD":/src -w /src python:3.12 python -m pytest
