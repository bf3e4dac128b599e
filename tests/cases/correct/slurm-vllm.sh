# form: https://slurm.schedmd.com/gres.html
#!/bin/bash
#SBATCH --gres=gpu:2
#SBATCH --ntasks=1
srun vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2
