#!/bin/sh
docker run -it --rm --gpus=all dustynv/tensorrt_llm:0.12-r36.4.0 bash
