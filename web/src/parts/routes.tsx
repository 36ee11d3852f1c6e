import { useEffect, useState } from 'preact/hooks';
import { Copy } from '../shared/copy.tsx';
import { messageOf, plural } from '../shared/format.ts';
import { Skeleton } from '../shared/skeleton.tsx';
import { hasWords, TextFilter } from '../shared/text-filter.tsx';
import { api, type OpenApi, type Operation } from '../state/api.ts';
import { route } from '../state/route.ts';
import { base } from '../state/settings.ts';
import '../style/home.css';
import '../style/routes.css';

interface Entry {
  method: string;
  path: string;
  operation: Operation;
}

/** The API of this server, from its own OpenAPI document. */
export function Routes() {
  const [read, setRead] = useState<OpenApi | string | null>(null);
  useEffect(() => {
    api.openApi().then(setRead, (error: unknown) => setRead(messageOf(error)));
  }, []);
  const { q } = route.value;
  return (
    <main class="home routes" aria-label="API">
      <header class="home-top">
        <h1>API</h1>
        <span />
        <TextFilter of="q" label="Filter routes" placeholder="Filter routes" />
      </header>
      <p>
        Every route of this server, from its <a href={`${base}api/openapi.json`}>OpenAPI document</a>, which
        generators of clients and other viewers read.
      </p>
      {read === null ? (
        <Skeleton />
      ) : typeof read === 'string' ? (
        <p class="problem">{read}</p>
      ) : (
        <List document={read} q={q} />
      )}
    </main>
  );
}

function List({ document, q }: { document: OpenApi; q: string }) {
  const entries = entriesOf(document).filter(({ method, path, operation: { operationId, summary } }) =>
    hasWords(`${method} ${path} ${operationId} ${summary}`, q),
  );
  return (
    <>
      <p class="quiet" role="status">
        {plural(entries.length, 'route')}
      </p>
      <ul>
        {entries.map((entry) => (
          <li key={`${entry.method} ${entry.path}`}>
            <details>
              <summary>
                <code class="routes-method">{entry.method}</code> <code>{entry.path}</code>
                <span class="quiet routes-summary">{entry.operation.summary}</span>
              </summary>
              <Details entry={entry} />
            </details>
          </li>
        ))}
      </ul>
    </>
  );
}

function entriesOf({ paths }: OpenApi): Entry[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

function Details({ entry: { method, path, operation } }: { entry: Entry }) {
  const { parameters = [], requestBody, responses } = operation;
  const scopes = operation['x-troupe-scopes'] ?? [];
  const body = requestBody?.content['application/json'];
  const answer = responses['200']?.content?.['application/json']?.schema;
  return (
    <div class="routes-details">
      <p>
        <code>{operation.operationId}</code>
        {scopes.length > 0 && `, for keys with ${scopes.join(' or ')}`}
      </p>
      {parameters.length > 0 && (
        <table aria-label="Parameters">
          <tbody>
            {parameters.map(({ name, in: place, required, schema, description }) => (
              <tr key={`${place} ${name}`}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td>
                  {place}
                  {required && ', required'}
                </td>
                <td>
                  <code>{typeOf(schema)}</code> {description}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Copy text={curlOf(method, path, body?.example)} />
      {body && <Schema name="Body" of={body.schema} />}
      {answer && <Schema name="Answer" of={answer} />}
      <p class="quiet">Answers {Object.keys(responses).join(', ')}</p>
    </div>
  );
}

function Schema({ name, of }: { name: string; of: unknown }) {
  return (
    <details>
      <summary>{name}</summary>
      <pre tabIndex={0}>{JSON.stringify(of, null, 2)}</pre>
    </details>
  );
}

/** What a parameter may be, in short. */
function typeOf({
  type,
  enum: values,
  minimum,
  maximum,
  pattern,
}: NonNullable<Operation['parameters']>[number]['schema']) {
  if (values) return values.join(' | ');
  const from = minimum === undefined ? '' : ` from ${minimum}`;
  const to = maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? '' : ` to ${maximum}`;
  return `${type ?? 'any'}${from}${to}${pattern === undefined ? '' : ` ${pattern}`}`;
}

/** Omits the key; the reader adds it. */
function curlOf(method: string, path: string, example: unknown): string {
  const url = `${location.origin}${base.replace(/\/$/, '')}${path}`;
  const sent =
    example === undefined ? '' : ` -H 'content-type: application/json' -d '${JSON.stringify(example)}'`;
  return `curl${method === 'GET' ? '' : ` -X ${method}`} '${url}'${sent}`;
}
