const PREFIX = 'troupe-';

/** Display preferences in this browser. Without storage, as in private windows, nothing is kept. */
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // The value lasts until the page is closed.
  }
}
