/** No build for this platform is installed; the message says what to install. */
export class ProgramMissing extends Error {
  readonly name: "ProgramMissing";
}

/**
 * The absolute path of the program, to be started as it is: `spawn(program(), ["serve"])`.
 *
 * @throws {ProgramMissing}
 */
export function program(): string;
