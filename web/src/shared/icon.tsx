/** Icons on a 16 by 16 grid, drawn with lines in the current text colour. */
const PATHS = {
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  first: 'M4 3v10M12 3L6 8l6 5',
  last: 'M12 3v10M4 3l6 5-6 5',
  back: 'M10 3L5 8l5 5',
  next: 'M6 3l5 5-5 5',
  play: 'M5 3l8 5-8 5z',
  pause: 'M6 3v10M10 3v10',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  fit: 'M2 3v10M14 3v10M4 8h8M6 6L4 8l2 2M10 6l2 2-2 2',
  target: 'M2 6V3h3M14 6V3h-3M2 10v3h3M14 10v3h-3M5 8h6',
  search: 'M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8M10 10l4 4',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6L13 13M13 3l-1.4 1.4M4.4 11.6L3 13',
  close: 'M4 4l8 8M12 4l-8 8',
} as const;

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
