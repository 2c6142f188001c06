"""REST and the web page over completion."""
