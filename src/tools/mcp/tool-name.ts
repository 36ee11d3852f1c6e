/** The longest name that all vendors accept. */
const MAX_TOOL_NAME = 64;

/** The name that models call a server's tool by. */
export function toolName(server: string, tool: string): string {
  return `${server}__${tool.replace(/[^A-Za-z0-9_-]/g, '_')}`.slice(0, MAX_TOOL_NAME);
}
