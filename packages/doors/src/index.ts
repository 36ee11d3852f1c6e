import type { Door, DoorName } from './troupe.ts';

/** A door for one troupe. The A2A door also sends notifications. Loads only what this door needs. */
export async function openDoor(name: DoorName): Promise<Door> {
  switch (name) {
    case 'a2a':
      return (await import('./a2a/routes.ts')).a2aDoor();
    case 'ag-ui':
      return (await import('./ag-ui/routes.ts')).agUi;
    case 'ai-sdk':
      return (await import('./ai-sdk/routes.ts')).aiSdk;
    case 'mcp':
      return (await import('./mcp/routes.ts')).mcp;
    case 'openai':
      return (await import('./openai/routes.ts')).openAi;
  }
}
