import { lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import type { Agent, buildConnector } from 'undici';
import { TroupeError } from '../errors.ts';
import { type AddressRule, hostOf, portOf, type ReachRule, type Resolve } from './allow-list.ts';

// A file of its own: `safe-fetch.ts` has public declarations, and compilers need not read those of undici for them.

export const resolveBySystem: Resolve = (host) => lookup(host, { all: true });

/**
 * An HTTP agent that connects to allowed addresses only. Invariants:
 * 1. Every connection is checked when it is opened, kept ones included.
 * 2. The checked addresses are those connected to: the name is looked up once, so it cannot change in between.
 * 3. One refused address refuses the name.
 */
export async function openGuardedAgent(parts: {
  reach: ReachRule;
  resolve?: Resolve;
  connectTimeoutMs: number;
  /** Default: at most 4 connections to one origin. */
  options?: Pick<Agent.Options, 'connections' | 'headersTimeout' | 'bodyTimeout'>;
}): Promise<Agent> {
  const { resolve = resolveBySystem, options = { connections: 4 } } = parts;
  const { Agent: AgentClass, buildConnector: build } = await import('undici');
  const connect: buildConnector.connector = (wanted, callback) => {
    const { hostname, protocol, port } = wanted;
    const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
    const target = { host, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
    const verdict = parts.reach(target);
    const refused = 'refused' in verdict ? verdict.refused : null;
    // Sockets do not look up a literal address.
    const reason = refused ?? ('addresses' in verdict && isIP(host) !== 0 ? verdict.addresses(host) : null);
    if (reason !== null || 'refused' in verdict) return callback(addressRefused(host, reason ?? ''), null);
    const lookupChecked = checkedLookup(host, verdict.addresses, resolve);
    build({ timeout: parts.connectTimeoutMs, allowH2: false, lookup: lookupChecked })(wanted, callback);
  };
  return new AgentClass({ ...options, connect, allowH2: false });
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
          // Omits the address, which would reveal internal hosts.
          if (reason !== null) return callback(addressRefused(host, `its address is ${reason}`), '');
        }
        if (options.all) callback(null, [...found]);
        else callback(null, first.address, first.family);
      },
      (thrown: unknown) => callback(thrown instanceof Error ? thrown : new Error(String(thrown)), ''),
    );
  };
}

/** Throws `address_refused`. Does not look up a name: the connection does, and checks its addresses. */
export function assertReachable(url: URL, reach: ReachRule): void {
  const host = hostOf(url);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw addressRefused(host, 'only http and https addresses are fetched');
  if (url.username !== '' || url.password !== '')
    throw addressRefused(host, 'an address with a user or a password is not fetched');
  const verdict = reach({ host, port: portOf(url) });
  if ('refused' in verdict) throw addressRefused(host, verdict.refused);
  const reason = isIP(host) === 0 ? null : verdict.addresses(host);
  if (reason !== null) throw addressRefused(host, `its address is ${reason}`);
}
