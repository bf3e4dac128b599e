# host: docker-28
docker run -d --gpus=all -v models:/root/.ollama -p 11434:11434 ollama/ollama
