package flakeids;

/** What can be wrong. The cause is the exception of the driver, if there is one. */
public class FlakeException extends RuntimeException {
    private static final long serialVersionUID = 1;

    FlakeException(String message, Throwable cause) { super(message, cause); }

    /** There was no ID in time, and it is worth trying again. */
    public static final class Unavailable extends FlakeException {
        private static final long serialVersionUID = 1;

        Unavailable(String message, Throwable cause) { super(message, cause); }
    }

    /** Somebody has to mend something: a privilege, the name of a layout, the extension, the login. */
    public static final class Refused extends FlakeException {
        private static final long serialVersionUID = 1;

        Refused(String message, Throwable cause) { super(message, cause); }
    }

    /** close() was called. */
    public static final class Closed extends FlakeException {
        private static final long serialVersionUID = 1;

        Closed() { super("close() was called", null); }
    }

    /** The thread that waited for an ID was interrupted. Its flag is set again. */
    public static final class Interrupted extends FlakeException {
        private static final long serialVersionUID = 1;

        Interrupted(InterruptedException cause) { super("interrupted while waiting for an ID", cause); }
    }

    /** A text is no public ID of this key. */
    public static final class InvalidID extends FlakeException {
        private static final long serialVersionUID = 1;

        InvalidID() { super("no public ID of this key", null); }
    }
}
