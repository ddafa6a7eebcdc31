import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from '@/api/client'
import { CallerProvider } from '@/session/caller'
import { Gate } from '@/app/gate'
import { router } from '@/app/router'
import { Texts } from '@/text'
import './styles/index.css'

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Polling asks again.
      retry: (failures, error) => !(error instanceof ApiError) && failures < 1,
      staleTime: 1000,
      refetchOnWindowFocus: 'always',
      refetchIntervalInBackground: false,
    },
    mutations: { retry: false },
  },
})

const root = document.getElementById('root')
if (!root) throw new Error('the page has no root')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Texts>
        <CallerProvider>
          <Gate>
            <RouterProvider router={router} />
          </Gate>
        </CallerProvider>
      </Texts>
    </QueryClientProvider>
  </StrictMode>,
)
