import { TroupeError } from '../../base/errors.ts';

/**
 * Where Redis is, in one URL:
 *  redis://host:6379/db                          one server, or one address in front of several
 *  redis+cluster://host:6379,host:6379           some nodes of a Cluster; the others are found through them
 *  redis+sentinel://host:26379,host:26379/name   Sentinels, and the name of the primary that they watch
 * `rediss` in place of `redis` is TLS, to the Sentinels too. User and password are those of the data servers. The
 * Sentinels' own, if they have any, are `?sentinelUsername=` and `?sentinelPassword=`.
 */
export type RedisPlace = ServerPlace | ClusterPlace | SentinelPlace;

interface ServerPlace {
  kind: 'server';
  url: URL;
}

export interface ClusterPlace extends ManyHosts {
  kind: 'cluster';
}

export interface SentinelPlace extends ManyHosts {
  kind: 'sentinel';
  /** Of the primary. */
  name: string;
  db: number;
  sentinelLogin: { sentinelUsername?: string; sentinelPassword?: string };
}

interface ManyHosts {
  hosts: { host: string; port: number }[];
  login: { username?: string; password?: string };
  isSecure: boolean;
}

const ONE = 'redis://host:6379';
const CLUSTER = 'redis+cluster://host:6379,host:6379';
const SENTINEL = 'redis+sentinel://host:26379,host:26379/name-of-the-primary';
const PORTS = { cluster: 6_379, sentinel: 26_379 };

/** Throws `config_invalid`. The URL is not repeated: it may contain a password. */
export function parseRedisUrl(url: string): RedisPlace {
  const [scheme = '', protocol, kind] = /^(rediss?)(?:\+(cluster|sentinel))?:\/\//.exec(url) ?? [];
  const rest = url.slice(scheme.length);
  // Passwords may contain unescaped characters, as MongoDB's URLs allow.
  const at = rest.lastIndexOf('@');
  const afterLogin = rest.slice(at + 1);
  const list = afterLogin.split(/[/?]/, 1)[0] ?? '';
  if (scheme === '') throw invalid('the Redis URL cannot be read');
  if (kind === undefined) return serverOf(url, list);
  const isCluster = kind === 'cluster';
  const many = {
    hosts: list.split(',').map((each) => hostOf(each, isCluster ? PORTS.cluster : PORTS.sentinel)),
    login: at < 0 ? {} : loginOf(rest.slice(0, at)),
    isSecure: protocol === 'rediss',
  };
  const [path = '', query = ''] = afterLogin.slice(list.length).replace(/^\//, '').split('?');
  return isCluster ? clusterOf(many, path, query) : sentinelOf(many, path, query);
}

function serverOf(url: string, list: string): ServerPlace {
  if (list.includes(',')) throw invalid('the Redis URL has several hosts, and does not say of what');
  const parsed = URL.parse(url);
  if (!parsed || parsed.hostname === '') throw invalid('the Redis URL cannot be read');
  return { kind: 'server', url: parsed };
}

function clusterOf(many: ManyHosts, path: string, query: string): ClusterPlace {
  if (path !== '' && path !== '0') {
    throw invalid('the Redis URL names a database, which a Cluster does not have: leave the path out');
  }
  if (query !== '')
    throw invalid('the Redis URL of a Cluster has a query, which has no meaning: leave it out');
  return { kind: 'cluster', ...many };
}

const LOGIN_OF_SENTINELS = ['sentinelUsername', 'sentinelPassword'] as const;

function sentinelOf(many: ManyHosts, path: string, query: string): SentinelPlace {
  const [name = '', db = '0', ...more] = path.split('/').map(decoded);
  if (name === '') throw invalid('the Redis URL lacks the name by which the Sentinels know the primary');
  if (!/^\d{1,4}$/.test(db) || more.length > 0) {
    throw invalid('in the Redis URL only the number of a database may follow the name of the primary');
  }
  const given = new URLSearchParams(query);
  const known: readonly string[] = LOGIN_OF_SENTINELS;
  const unknown = [...given.keys()].find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw invalid(`the query of the Redis URL may have ${known.join(' and ')} only`);
  }
  const sentinelLogin = Object.fromEntries(
    LOGIN_OF_SENTINELS.flatMap((key) => (given.has(key) ? [[key, given.get(key) ?? '']] : [])),
  );
  return { kind: 'sentinel', ...many, name, db: Number(db), sentinelLogin };
}

function hostOf(text: string, defaultPort: number): { host: string; port: number } {
  const parsed = URL.parse(`redis://${text}`);
  if (!parsed || parsed.hostname === '' || parsed.pathname !== '' || parsed.hash !== '') {
    throw invalid('the Redis URL has a host that cannot be read');
  }
  // An IPv6 address has brackets only in a URL.
  return { host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(parsed.port || defaultPort) };
}

function loginOf(text: string): ManyHosts['login'] {
  const colon = text.indexOf(':');
  const username = decoded(colon < 0 ? text : text.slice(0, colon));
  const password = colon < 0 ? '' : decoded(text.slice(colon + 1));
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone % in a password.
    return text;
  }
}

/** Hosts, ports and database: unlike the URL, safe to print. */
export function redisAddress(url: string): string {
  const place = parseRedisUrl(url);
  if (place.kind === 'server') {
    const { hostname, port, pathname } = place.url;
    return `${hostname}:${port || '6379'}${pathname.length > 1 ? pathname : ''}`;
  }
  const hosts = place.hosts.map(({ host, port }) => `${host}:${port}`).join(',');
  return place.kind === 'cluster' ? hosts : `${hosts}/${place.name}${place.db === 0 ? '' : `/${place.db}`}`;
}

function invalid(what: string): TroupeError {
  return new TroupeError(
    'config_invalid',
    `${what}: write ${ONE}, ${CLUSTER} or ${SENTINEL}; with TLS "rediss" in place of "redis", with a login user:password@ before the first host`,
  );
}
