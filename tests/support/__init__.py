"""What several tests share. Nothing here knows of a particular test."""
