/** Words that stand for an event in what a vendor's API was sent: nothing else is written so. */
export function markerOf(kind: 'said' | 'other' | 'reply', number: number): string {
  return `<<${kind}-${number}>>`;
}

const MARKER = /<<(?:said|other|reply)-\d+>>/g;

export function markersIn(text: string): string[] {
  return text.match(MARKER) ?? [];
}
