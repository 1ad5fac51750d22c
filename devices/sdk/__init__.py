"""Setting up a private Android SDK: catalogue, plan, licences, verified download, journalled install, AVDs."""
