"""What programs say of a connection: its URL, the options in it, and the policies beside it."""
