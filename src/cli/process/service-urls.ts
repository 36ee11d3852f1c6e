import { TroupeError } from '../../errors.ts';

/** The two servers of the distributed mode. */
export interface ServiceUrls {
  mongodb: string;
  redis: string;
  /** Of all keys in Redis. */
  prefix: string;
}

export interface UrlOptions {
  mongodb?: string;
  redis?: string;
  prefix: string;
}

type Env = Record<string, string | undefined>;

interface Service {
  name: string;
  option: 'mongodb' | 'redis';
  variable: string;
  schemes: readonly string[];
  example: string;
}

const MONGODB: Service = {
  name: 'MongoDB',
  option: 'mongodb',
  variable: 'MONGODB_URL',
  schemes: ['mongodb:', 'mongodb+srv:'],
  example: 'mongodb://127.0.0.1:27017/troupe',
};
const REDIS: Service = {
  name: 'Redis',
  option: 'redis',
  variable: 'REDIS_URL',
  schemes: ['redis:', 'rediss:'],
  example: 'redis://127.0.0.1:6379',
};

/** From the flags, else from the environment. Throws `config_invalid` for one that is missing or of another kind. */
export function readServiceUrls(options: UrlOptions, env: Env): ServiceUrls {
  return {
    mongodb: readUrl(MONGODB, options, env),
    redis: readUrl(REDIS, options, env),
    prefix: options.prefix,
  };
}

function readUrl({ name, option, variable, schemes, example }: Service, options: UrlOptions, env: Env) {
  const url = options[option] ?? env[variable]?.trim();
  if (!url) {
    const message = `no ${name} is named: set ${variable} (as ${example}) or use --${option}. One machine needs neither MongoDB nor Redis: "troupe dev"`;
    throw new TroupeError('config_invalid', message, { variable });
  }
  if (schemes.some((scheme) => url.startsWith(`${scheme}//`))) return url;
  const where = options[option] === undefined ? variable : `--${option}`;
  // The value is not repeated: it may be a misplaced password.
  const message = `${where} is not the URL of a ${name} server: it must begin with ${schemes.join('// or ')}//`;
  throw new TroupeError('config_invalid', message, { variable });
}

/**
 * A URL without user, password and query, which may be secret. Parsed by hand: URL parsers refuse lists of hosts, and
 * passwords with unescaped characters.
 */
export function shownUrl(url: string): string {
  const start = url.indexOf('://') + 3;
  const end = url.lastIndexOf('@');
  const rest = (end < 0 ? url.slice(start) : url.slice(end + 1)).split(/[?#]/)[0] ?? '';
  return `${url.slice(0, start)}${rest}`;
}
