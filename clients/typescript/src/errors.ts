// What can be wrong. `cause` is the error that the driver has thrown, if there is one.

export class FlakeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** There was no ID in time, and it is worth trying again. */
export class Unavailable extends FlakeError {}

/** Somebody has to mend something: a privilege, the name of a layout, the extension, the login. */
export class Refused extends FlakeError {}

/** close() was called. */
export class Closed extends FlakeError {}

/** A text is no public ID of this key. */
export class InvalidID extends FlakeError {}

const PERMANENT = new Set(["42501", "42883", "22023", "2200H", "3D000", "28000", "28P01"]);

/** Whether waiting is of no use, by the error's SQLSTATE. */
export function isPermanent(problem: unknown): boolean {
  return PERMANENT.has((problem as { code?: string } | null)?.code ?? "");
}

export function messageOf(problem: unknown): string {
  return problem instanceof Error ? problem.message || problem.name : String(problem);
}
