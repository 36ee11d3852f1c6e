import type { Clock } from '../../base/clock.ts';
import { loadWith, type Need } from '../../base/optional-packages.ts';
import type { Author } from '../../events/index.ts';
import type { Door, DoorName } from '../integrations/door.ts';
import type { Troupe } from '../troupe.ts';

/** The interface of `@troupe/doors` that the core uses. The package is separate and optional. */
export interface DoorsPackage {
  /** A door for one troupe. */
  openDoor(name: DoorName): Promise<Door>;
}

/** The interface that the commands use: serves a client that has started this process, at stdin and stdout. */
export interface StdioDoors {
  /** Serves an editor with the Agent Client Protocol, until it disconnects. */
  serveAcp: (parts: StdioParts) => Promise<void>;
  /** Serves a client of the Model Context Protocol, until it disconnects. */
  serveMcp: (parts: StdioParts) => Promise<void>;
  /** Connects a client of the Model Context Protocol to the server at `url`, until it disconnects. */
  relayMcp: (parts: StdioRelay) => Promise<void>;
}

/** What serving a client at stdin and stdout needs. */
export interface StdioParts {
  /** The troupe, in this process. */
  troupe: Troupe;
  /** Source of time. */
  clock: Clock;
  /** The person at the client. */
  author: Author;
  /** Version of Troupe. */
  version: string;
  /** Ends the connection. */
  signal: AbortSignal;
}

/** What connecting such a client to a server needs. */
export interface StdioRelay extends Pick<StdioParts, 'clock' | 'version' | 'signal'> {
  /** URL of the server's MCP door. */
  url: URL;
  /** A key, or the server's token. */
  credential: string | undefined;
}

function needOf(by: string): Need {
  return { by, packages: { '@troupe/doors': null } };
}

/** Opens the doors of a definition. Throws `package_missing`. */
export async function openDoors(doors: readonly (DoorName | Door)[] = []): Promise<readonly Door[]> {
  return Promise.all(doors.map(async (door) => (typeof door === 'string' ? openDoor(door) : door)));
}

async function openDoor(name: DoorName): Promise<Door> {
  // `as string`: the core compiles without the package.
  const load = async () => (await import('@troupe/doors' as string)) as DoorsPackage;
  return (await loadWith(needOf(`the door "${name}"`), load)).openDoor(name);
}

/** Throws `package_missing`. */
export function loadStdioDoors(command: string): Promise<StdioDoors> {
  return loadWith(needOf(command), async () => (await import('@troupe/doors/stdio' as string)) as StdioDoors);
}
