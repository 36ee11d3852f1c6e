import { arch, hostname, platform, release } from 'node:os';

/** What is known of the doors of Troupe itself. Programs describe their own. */
const DOORS: Readonly<Record<string, string>> = {
  cli: 'a terminal, which shows plain text and no images',
  nostr: 'notes on Nostr relays, which are public plain text',
};

/** The descriptions of doors, by name: those of the definition first. */
export function channelsOf(described: Readonly<Record<string, string>> = {}): Map<string, string> {
  return new Map(Object.entries({ ...DOORS, ...described }));
}

/** The machine on one line: the system, its architecture and time zone; with `host` its name too. */
export function machineText(how: 'system' | 'host'): string {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const system = `${platform()} ${release()}, ${arch()}, time zone ${timeZone}`;
  return how === 'host' ? `${hostname()}: ${system}` : system;
}
