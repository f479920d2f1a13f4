#!/bin/bash
# Tunes the shipped models on the CPU and puts their schedules beside them: after a change that gives kernels other hashes.
#     apps/bench/tune_cpu_models.sh [SECONDS]     run from the repository root; SECONDS a model, 20 by default
set -e
for archive in apps/models/*.pt2; do
    build/bin/tilewright autotune "$archive" --target cpu --budget "${1:-20}" --out "${archive%.pt2}.cpu.schedule"
done
