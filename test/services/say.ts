/** Prints progress on stderr; stdout belongs to the command that runs on the services. */
export function say(line: string): void {
  process.stderr.write(`services: ${line}\n`);
}
