import type { Target } from '../target.ts';

/** Each with its share of a mixed run, in thousandths; those without one run when they are named. */
export const SHARES: Readonly<Record<string, number>> = {
  events: 500,
  fences: 100,
  imports: 200,
  routes: 150,
  frames: 50,
};

export const TARGETS: Readonly<Record<string, () => Promise<Target>>> = {
  events: async () => (await import('./events.ts')).eventsTarget(),
  fences: async () => (await import('./fences.ts')).fencesTarget(),
  imports: async () => (await import('./imports.ts')).importsTarget(),
  routes: async () => (await import('./routes.ts')).routesTarget(),
  frames: async () => (await import('./frames.ts')).framesTarget(),
  regex: async () => (await import('./regex.ts')).regexTarget(),
};
