/** Progress, for whoever waits; never on stdout, which belongs to what runs on the services. */
export function say(line: string): void {
  process.stderr.write(`services: ${line}\n`);
}
