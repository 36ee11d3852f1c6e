import type { Integration } from './integration.ts';

/** The doors of `@troupe/doors`. */
export const DOORS = ['a2a', 'ag-ui', 'ai-sdk', 'mcp', 'openai'] as const;
/** A door of `@troupe/doors`. */
export type DoorName = (typeof DOORS)[number];

/** A door: lets clients of another protocol in, over HTTP. Made with `defineDoor` of `troupe/http`. */
export interface Door {
  /** Unique within a troupe. The `channel` of messages that come through this door. */
  readonly name: string;
  /** Its routes, made with `defineRoute` of `troupe/http`. */
  readonly routes: readonly object[];
  /** Works beside the routes, as one of the troupe's integrations. */
  readonly integration?: Integration | undefined;
}

export function isDoor(value: unknown): value is Door {
  const { name, routes } = Object(value) as Record<string, unknown>;
  return typeof name === 'string' && Array.isArray(routes);
}
