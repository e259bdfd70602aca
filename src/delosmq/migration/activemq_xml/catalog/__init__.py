"""What each name of activemq.xml becomes."""
