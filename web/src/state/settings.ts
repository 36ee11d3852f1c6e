/** Settings that the server wrote into the head of the page; see `src/http/page/page.ts`. */
export type PageMode = 'write' | 'read-only' | 'token';

function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="troupe-${name}"]`)?.content ?? '';
}

export const mode = meta('mode') as PageMode;
export const version = meta('version');

let token = meta('token');

/** Required with every write. Pages from other origins cannot know it. */
export function writeToken(): string {
  return token;
}

/** Reads the token again from the page that the server now serves. False if it has not changed. */
export async function renewWriteToken(): Promise<boolean> {
  // The server sends the page only to requests that accept HTML.
  const served = await fetch(base, { headers: { accept: 'text/html' } });
  const page = new DOMParser().parseFromString(await served.text(), 'text/html');
  const given = page.querySelector<HTMLMetaElement>('meta[name="troupe-token"]')?.content ?? '';
  const isNew = given !== '' && given !== token;
  if (isNew) token = given;
  return isNew;
}
/** Path where the app is mounted, with a trailing slash. */
export const base = new URL(document.baseURI).pathname;

const TOKEN_KEY = 'troupe-server-token';

/** The bearer token of a server that requires one: from `#token=…`, then kept for this tab. */
export function serverToken(): string | null {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given !== null) {
    sessionStorage.setItem(TOKEN_KEY, given);
    history.replaceState(history.state, '', location.pathname + location.search);
  }
  return sessionStorage.getItem(TOKEN_KEY);
}

/** Reloads the page with another token. */
export function useToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token);
  location.reload();
}

export function leave(): void {
  sessionStorage.removeItem(TOKEN_KEY);
  location.reload();
}
