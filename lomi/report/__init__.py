"""Reports that anybody may open: one HTML page that loads and runs nothing, and XML, from untrusted text."""
