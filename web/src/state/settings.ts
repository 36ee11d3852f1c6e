/** What the server has told the page in its head: see `src/http/page.ts`. */
export type PageMode = 'write' | 'read-only' | 'token';

function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="troupe-${name}"]`)?.content ?? '';
}

export const mode = meta('mode') as PageMode;
export const version = meta('version');

let token = meta('token');

/** Must come with every write: pages from elsewhere cannot know it. */
export function writeToken(): string {
  return token;
}

/** Reads it again, from the page as the server gives it now; false where it is the same. */
export async function renewWriteToken(): Promise<boolean> {
  const page = new DOMParser().parseFromString(await (await fetch(base)).text(), 'text/html');
  const given = page.querySelector<HTMLMetaElement>('meta[name="troupe-token"]')?.content ?? '';
  const isNew = given !== '' && given !== token;
  if (isNew) token = given;
  return isNew;
}
/** Where the app is mounted, with a slash at its end. */
export const base = new URL(document.baseURI).pathname;

const TOKEN_KEY = 'troupe-server-token';

/** The bearer token of a server that wants one: from `#token=…`, then kept for this tab. */
export function serverToken(): string | null {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given !== null) {
    sessionStorage.setItem(TOKEN_KEY, given);
    history.replaceState(history.state, '', location.pathname + location.search);
  }
  return sessionStorage.getItem(TOKEN_KEY);
}

export function setServerToken(token: string): void {
  sessionStorage.setItem(TOKEN_KEY, token);
}
