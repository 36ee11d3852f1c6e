import { once } from 'node:events';
import { systemClock } from '../../base/clock.ts';
import type { HttpServer } from '../../http/api/index.ts';
import { count, paint, print, printJson, table } from '../render/output.ts';
import { agentNames, type ProcessParts, runProcess } from '../process/run-process.ts';
import { serviceRows, type UrlOptions } from '../process/service-urls.ts';
import { version } from '../version.ts';

interface ServeOptions extends UrlOptions {
  port: number;
  host: string;
  readOnly?: boolean;
  json?: boolean;
}

/** Requests are answered for this long after `/readyz` begins to refuse, so that load balancers can switch. */
const DRAIN_MS = 2_000;

/** The API of the distributed mode. It takes no turns. */
export async function serve(file: string | undefined, options: ServeOptions): Promise<void> {
  const { host, port, readOnly, json } = options;
  const [{ createApp, serveHttp }, { callerOptions, readToken, requireCredentials }] = await Promise.all([
    import('../../http/api/index.ts'),
    import('../process/require-token.ts'),
  ]);
  const token = readToken(process.env);
  await runProcess(file, { ...options, concurrency: null }, async (parts) => {
    const { troupe, metrics, signal, found, services, onError } = parts;
    const { access } = found.definition;
    // Required on loopback, too: a proxy there forwards requests from everywhere.
    const why = 'serve answers no request without a credential';
    await requireCredentials(troupe, { token, access, now: systemClock.now(), why });
    const app = createApp(troupe, {
      signal,
      ...callerOptions(troupe, token, access),
      keyless: 'refused',
      metrics,
      onError,
      readOnly,
      version: version(),
    });
    // A load balancer expects exactly this port.
    const server = await serveHttp(app, { host, port, tries: 1 });
    if (json) printJson({ url: server.url, page: `${server.url}/`, ...services });
    else showBanner(server, parts);
    if (!signal.aborted) await once(signal, 'abort');
    await systemClock.sleep(DRAIN_MS);
    await server.close();
  });
}

function showBanner({ url }: HttpServer, { found, services }: ProcessParts): void {
  const rows = [
    ['Page', paint('cyan', `${url}/`)],
    ['API', `${url}/api/openapi.json`],
    ...serviceRows(services),
    ['Agents', `${agentNames(found.definition)} (${found.file})`],
  ];
  print(paint('bold', `troupe: API for ${count(found.definition.agents.length, 'agent')} ready`));
  print(table(rows.map(([name = '', value = '']) => [`  ${paint('dim', name)}`, value])));
  print(
    paint(
      'dim',
      'It takes no turns: start "troupe worker" for that. Ctrl-C stops it; press it twice to stop at once.',
    ),
  );
}
