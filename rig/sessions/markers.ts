/** Words that mark an event in requests to a vendor's API. Nothing else looks like them. */
export function markerOf(kind: 'said' | 'other' | 'reply', number: number): string {
  return `<<${kind}-${number}>>`;
}

const MARKER = /<<(?:said|other|reply)-\d+>>/g;

export function markersIn(text: string): string[] {
  return text.match(MARKER) ?? [];
}
