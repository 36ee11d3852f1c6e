import type { NewKey } from '../../src/library/access/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { type Answer, type Harness, startApi } from './harness.ts';

/** The requests that a caller with one credential makes. */
export interface Asker {
  secret: string;
  id: string;
  headers: { authorization: string };
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body: unknown): Promise<Answer>;
  delete(path: string): Promise<Answer>;
}

/** An API that requires a credential for every request. */
export function startGuarded(options: Parameters<typeof startApi>[0] = {}): Promise<Harness> {
  let opened: Troupe | undefined;
  return startApi({
    keyless: 'refused',
    wrap: (troupe) => (opened = troupe),
    authenticate: async (credential) => (await opened?.authenticate(credential)) ?? null,
    ...options,
  });
}

export function asker(api: Pick<Harness, 'get' | 'post'>, secret: string): Asker {
  const headers = { authorization: `Bearer ${secret}` };
  return {
    secret,
    id: secret.split('_')[1] ?? '',
    headers,
    get: (path, more) => api.get(path, { headers: { ...headers, ...more } }),
    post: (path, body) => api.post(path, body, headers),
    delete: (path) => api.get(path, { method: 'DELETE', headers }),
  };
}

/** A caller with a new key of this tenant. */
export async function withKey(
  api: Harness,
  key: Partial<NewKey> = {},
  tenant: string = 'default',
): Promise<Asker> {
  const troupe = tenant === 'default' ? api.troupe : api.troupe.forTenant(tenant);
  const given = { name: 'test', scopes: ['read', 'write', 'operate', 'admin'] as const, ...key };
  return asker(api, (await troupe.keys.create({ ...given, scopes: [...given.scopes] })).secret);
}
