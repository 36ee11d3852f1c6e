import { createApp, serveHttp } from '../../src/http/api/index.ts';
import { createTroupe, type TroupeOptions } from '../../src/index.ts';
import { neighbours } from './company.ts';
import { tellUsage } from './usage.ts';

/**
 * One process of the system under test: `both` serves and works, `api` only serves, `worker` only works. Sends its
 * address and the keys of the two tenants to its parent. Argument: a `ProcessTask` as JSON.
 */
export interface ProcessTask {
  role: 'both' | 'api' | 'worker';
  modelUrl: string;
  options: Pick<TroupeOptions, 'data' | 'mongodb' | 'redis' | 'prefix'>;
}

export interface Serving {
  url: string;
  keys: { calm: string; noisy: string };
  /** Further keys of the noisy tenant: rates are those of one key. */
  noisyKeys: string[];
}

const { role, modelUrl, options } = JSON.parse(process.argv[2] ?? '{}') as ProcessTask;
const warnings = new Map<string, number>();
const troupe = await createTroupe(neighbours(modelUrl), {
  ...options,
  work: role !== 'api',
  // Noise is expected to cause warnings: each kind is printed once.
  onWarning(error, where) {
    const seen = warnings.get(where) ?? 0;
    warnings.set(where, seen + 1);
    if (seen === 0) console.error(`${role} ${process.pid}: ${where}: ${String(error).slice(0, 300)}`);
  },
});
tellUsage();
if (role === 'worker') process.send?.('ready');
else process.send?.(await serve());
process.on('disconnect', () => process.exit(0));

async function serve(): Promise<Serving> {
  const app = createApp(troupe, {
    authenticate: (credential: string) => troupe.authenticate(credential),
    keyless: 'refused',
    web: false,
  });
  const { url } = await serveHttp(app, { port: 0 });
  const scopes = ['read', 'write', 'operate'] as const;
  const keyOf = async (tenant: string) =>
    (await troupe.forTenant(tenant).keys.create({ name: tenant, scopes: [...scopes] })).secret;
  const noisyKeys = await Promise.all(Array.from({ length: 16 }, () => keyOf('noisy')));
  return { url, keys: { calm: await keyOf('calm'), noisy: await keyOf('noisy') }, noisyKeys };
}
