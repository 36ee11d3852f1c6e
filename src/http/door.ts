import { type Door, DOORS, type DoorName } from '../library/integrations/door.ts';
import type { Route } from './route.ts';

/** Makes a door of routes: of a protocol that is not ours, in a package of its own. `doors` of a definition opens it. */
export function defineDoor(door: Omit<Door, 'routes'> & { readonly routes: readonly Route[] }): Door {
  return door;
}

/** Doors are made with `defineDoor` alone. */
export function routesOf({ routes }: Door): readonly Route[] {
  return routes as readonly Route[];
}

const PATHS: Readonly<Record<DoorName, RegExp>> = {
  a2a: /^\/api\/a2a(?:\/|$)/,
  'ag-ui': /^\/api\/(?:conversations\/[^/]+\/)?ag-ui$/,
  'ai-sdk': /^\/api\/conversations\/[^/]+\/chat(?:\/|$)/,
  mcp: /^\/api\/mcp$/,
  openai: /^\/api\/(?:conversations\/[^/]+\/)?v1\//,
};

/** The door of `@troupe/doors` to which a path belongs; null: it is of none. */
export function doorOf(path: string): DoorName | null {
  return DOORS.find((name) => PATHS[name].test(path)) ?? null;
}
