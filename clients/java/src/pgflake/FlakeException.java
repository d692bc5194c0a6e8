package pgflake;

/** What can be wrong. The cause is the exception of the driver, if there is one. */
public class FlakeException extends RuntimeException {
    private static final long serialVersionUID = 1;

    FlakeException(String message, Throwable cause) { super(message, cause); }

    /** There was no lease in time, and it is worth trying again. */
    public static final class NoLease extends FlakeException {
        private static final long serialVersionUID = 1;
        private final String reason;

        NoLease(String message, String reason, Throwable cause) {
            super(message, cause);
            this.reason = reason;
        }

        /** The server's reason, or null if it has not answered. */
        public String reason() { return reason; }
    }

    /** Somebody has to mend something: a privilege, the name of a layout, a layout that cannot lease. */
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
