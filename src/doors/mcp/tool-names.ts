/** A tool for one agent or one workflow. */
export interface NamedTool {
  /** Name of the tool. */
  name: string;
  /** Id of the agent or the workflow. */
  id: string;
}

/** Clients put the name of the server before it, and vendors allow 64 characters. */
const MOST_CHARS = 48;

/** One tool for each id: `PREFIX_ID`. Ids whose names would be the same or too long have none. */
export function toolNames(
  prefix: string,
  ids: readonly string[],
  taken: readonly string[] = [],
): NamedTool[] {
  const seen = new Set(taken);
  return ids.flatMap((id) => {
    const name = `${prefix}_${id.replaceAll(/[^A-Za-z0-9_-]/g, '_')}`;
    if (name.length > MOST_CHARS || seen.has(name)) return [];
    seen.add(name);
    return [{ name, id }];
  });
}
