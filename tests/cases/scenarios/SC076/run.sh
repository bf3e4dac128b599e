#!/bin/sh
docker run --rm --gpus=all nvidia/cuda:12.6.0-base-ubuntu24.04 nvidia-smi
