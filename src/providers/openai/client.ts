import type OpenAI from 'openai';
import { fetchOptions, type VendorFetch } from '../vendor-fetch.ts';

export interface OpenAiClientOptions {
  apiKey: string;
  baseUrl: string;
  timeoutMs: number;
  fetch: VendorFetch;
  /** Sends the organization and project of the environment to this server. */
  sendsAccount: boolean;
}

/** Loads the SDK and makes its client. */
export async function connectOpenAi(options: OpenAiClientOptions): Promise<OpenAI> {
  const { apiKey, baseUrl, timeoutMs, fetch, sendsAccount } = options;
  const { OpenAI: Client } = await import('openai');
  return new Client({
    apiKey,
    baseURL: baseUrl,
    maxRetries: 0,
    timeout: timeoutMs,
    logLevel: 'off',
    fetch,
    fetchOptions: await fetchOptions(),
    // Otherwise the SDK reads them from the environment.
    ...(sendsAccount ? {} : { organization: null, project: null }),
  });
}

export function isOpenAi(baseUrl: string): boolean {
  return new URL(baseUrl).hostname === 'api.openai.com';
}
