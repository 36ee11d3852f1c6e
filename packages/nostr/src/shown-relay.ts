/** A relay's address for people and logs. Users, passwords and queries may be secrets, and are shown to nobody. */
export function shownRelay(url: string): string {
  if (!URL.canParse(url)) return 'what was given';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
