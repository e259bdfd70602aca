"""The page of an audit: HTML with everything in it, nothing from elsewhere."""
