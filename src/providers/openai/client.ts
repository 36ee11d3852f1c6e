import { readEventStream, reportedFailure } from '../event-stream.ts';
import { customHeaders, type VendorFetch } from '../vendor-fetch.ts';
import { isOpenAi } from './quirks.ts';

interface ClientOptions {
  apiKey: string;
  baseUrl: string;
  fetch: VendorFetch;
  /** Headers of the agent's own. They replace others of their name. */
  headers?: Record<string, string>;
}

/**
 * OpenAI's HTTP API. Failures are thrown as they came: those of `fetch`, or an error with the `status`, `headers` and
 * `error` of the answer. Answers are not validated: servers that only resemble OpenAI's may send anything.
 */
export interface OpenAiClient {
  /** Resolves to the JSON of the answer. */
  request(path: string, body: object, signal: AbortSignal): Promise<unknown>;
  /** Resolves once the server has accepted the request, to the events of its answer. */
  stream<E>(path: string, body: object, signal: AbortSignal): Promise<AsyncIterable<E>>;
}

export function openAiClient({ apiKey, baseUrl, fetch, headers: own }: ClientOptions): OpenAiClient {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` };
  const account = isOpenAi(baseUrl) ? accountHeaders() : {};
  const root = baseUrl.replace(/\/$/, '');

  async function post(path: string, body: object, signal: AbortSignal): Promise<Response> {
    const response = await fetch(`${root}${path}`, {
      method: 'POST',
      headers: joined(headers, account, own),
      body: JSON.stringify(body),
      signal,
    });
    if (response.ok) return response;
    // The status counts, even if the connection is lost before the words are here.
    throw refusal(await response.text().catch(() => ''), response);
  }

  return {
    async request(path, body, signal) {
      return await (await post(path, body, signal)).json();
    },
    async stream(path, body, signal) {
      return readEventStream(await post(path, body, signal));
    },
  };
}

/** Later ones replace earlier ones of the same name, in whatever case. */
function joined(...all: (Record<string, string> | undefined)[]): Headers {
  const headers = new Headers();
  for (const each of all) for (const [name, value] of Object.entries(each ?? {})) headers.set(name, value);
  return headers;
}

/** The account of the environment. Only for OpenAI's own servers: no other may see it. */
function accountHeaders(): Record<string, string> {
  const { OPENAI_ORG_ID: organization, OPENAI_PROJECT_ID: project } = process.env;
  return {
    ...(organization && { 'openai-organization': organization }),
    ...(project && { 'openai-project': project }),
    ...customHeaders('OPENAI_CUSTOM_HEADERS'),
  };
}

/** The error of a response that is not OK. */
function refusal(text: string, { status, headers }: Response): Error {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Proxies answer with HTML: the text is the message.
  }
  return reportedFailure(text, body, { status, headers });
}
