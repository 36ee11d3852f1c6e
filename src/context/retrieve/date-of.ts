/** The last time that a Date can hold; imported events may name a later one. */
const LAST_TIME = 8.64e15;

export function dateOf(at: number): Date {
  return new Date(Math.min(at, LAST_TIME));
}
