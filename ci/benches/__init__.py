"""What Lomi costs, each figure beside a yardstick measured in the same run. `ci/bench` runs it."""
