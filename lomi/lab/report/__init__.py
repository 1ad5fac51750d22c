"""What a run leaves: JSON, JUnit XML, one HTML page, the files of every attempt, and the hashes of all of it."""
