#!/bin/sh
# examples/cluster/torchrun.sh train.yaml --output_dir runs/two
#
# One machine, a process for each GPU, or PROCESSES of them on CPUs. A killed run goes on where it was saved.
set -eu

gpus=$(python -c "import torch; print(torch.cuda.device_count())")
processes=${PROCESSES:-$((gpus > 0 ? gpus : 2))}

config=$1
shift
exec torchrun --standalone --nproc_per_node="$processes" -m partway train "$config" --resume auto "$@"
