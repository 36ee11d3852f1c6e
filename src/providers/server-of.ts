import type { Provider } from './provider.ts';

/** Which server a provider asks. Throws for what is no URL, as the client would. */
export function serverOf(baseUrl: string): NonNullable<Provider['server']> {
  const { hostname, port, protocol } = new URL(baseUrl);
  return { address: hostname, port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port) };
}
