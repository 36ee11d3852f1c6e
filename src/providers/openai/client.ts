import type OpenAI from 'openai';
import { fetchOptions, foreignHeaders, type VendorFetch } from '../vendor-fetch.ts';
import { isOpenAi } from './quirks.ts';

interface ClientOptions {
  apiKey: string;
  baseUrl: string;
  timeoutMs: number;
  fetch: VendorFetch;
}

/** The client of OpenAI's SDK. The first call loads the SDK. */
export function openAiClient(options: ClientOptions): () => Promise<OpenAI> {
  let client: Promise<OpenAI> | undefined;
  return () => (client ??= connect(options));
}

async function connect({ apiKey, baseUrl, timeoutMs, fetch }: ClientOptions): Promise<OpenAI> {
  const { OpenAI: Client } = await import('openai');
  const isVendor = isOpenAi(baseUrl);
  return new Client({
    apiKey,
    baseURL: baseUrl,
    maxRetries: 0,
    timeout: timeoutMs,
    logLevel: 'off',
    fetch,
    fetchOptions: await fetchOptions(),
    // Otherwise the SDK reads them from the environment and sends them to any server.
    ...(!isVendor && {
      organization: null,
      project: null,
      defaultHeaders: foreignHeaders('OPENAI_CUSTOM_HEADERS', { authorization: `Bearer ${apiKey}` }),
    }),
  });
}
