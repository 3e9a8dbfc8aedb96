"""What was seen: the record types, the recording on disk, every reader of a public format."""
