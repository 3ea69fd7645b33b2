"""What more than one test file uses: inputs, oracles, small experiments, programs that run under mpirun."""
