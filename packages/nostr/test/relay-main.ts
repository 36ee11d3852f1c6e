import { openRelay } from './relay.ts';
import type { RelayOptions } from './relay-process.ts';
import { serveParent } from './relay-server.ts';

/** The process of `startRelayProcess`. */
serveParent(await openRelay(JSON.parse(process.argv[2] ?? '{}') as RelayOptions));
