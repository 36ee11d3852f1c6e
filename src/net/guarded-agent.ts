import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import type { Agent, buildConnector } from 'undici';
import { TroupeError } from '../errors.ts';
import type { AddressRule, ReachRule } from './allow-list.ts';

/** All addresses of a name. */
export type Resolve = (host: string) => Promise<readonly { address: string; family: number }[]>;

export const resolveBySystem: Resolve = (host) => lookup(host, { all: true });

/**
 * Connections to where it may. Invariants:
 * 1. Every connection is checked where it is made, whoever asked for it; a kept one was checked when it was made.
 * 2. The addresses that were checked are those connected to: the name is looked up once, in between nobody can change
 *    what it means.
 * 3. One address that is refused refuses the name.
 */
export async function openGuardedAgent(parts: {
  reach: ReachRule;
  resolve: Resolve;
  connectTimeoutMs: number;
}): Promise<Agent> {
  const { Agent: AgentClass, buildConnector: build } = await import('undici');
  const connect: buildConnector.connector = (options, callback) => {
    const { hostname, protocol, port } = options;
    const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
    const target = { host, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
    const verdict = parts.reach(target);
    const refused = 'refused' in verdict ? verdict.refused : null;
    // Sockets do not look up what is an address already.
    const reason = refused ?? ('addresses' in verdict && isIP(host) !== 0 ? verdict.addresses(host) : null);
    if (reason !== null || 'refused' in verdict) return callback(addressRefused(host, reason ?? ''), null);
    const lookupChecked = checkedLookup(host, verdict.addresses, parts.resolve);
    build({ timeout: parts.connectTimeoutMs, allowH2: false, lookup: lookupChecked })(options, callback);
  };
  return new AgentClass({ connect, connections: 4, allowH2: false });
}

export function addressRefused(host: string, reason: string): TroupeError {
  const what = host === '' ? 'this address' : host;
  const message = `${what} is not fetched: ${reason}`;
  return new TroupeError('address_refused', message, { host, reason });
}

function checkedLookup(host: string, addresses: AddressRule, resolve: Resolve): LookupFunction {
  return (_name, options, callback) => {
    resolve(host).then(
      (found) => {
        const [first] = found;
        if (!first) return callback(new Error(`${host} has no address`), '');
        for (const { address } of found) {
          const reason = addresses(address);
          // The address itself would tell who asks what is behind the name.
          if (reason !== null) return callback(addressRefused(host, `its address is ${reason}`), '');
        }
        if (options.all) callback(null, [...found]);
        else callback(null, first.address, first.family);
      },
      (thrown: unknown) => callback(thrown instanceof Error ? thrown : new Error(String(thrown)), ''),
    );
  };
}
